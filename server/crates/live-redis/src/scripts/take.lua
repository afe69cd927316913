-- Counts several events at once against a rate limit, all of them or none, by the generic cell rate
-- algorithm. Returns 0, or how many microseconds to wait.
--
-- KEYS: the time until which events were counted
-- ARGV: the microseconds between two events at the rate, how many events may happen at once, how
--       many there are
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local many = math.min(tonumber(ARGV[3]), burst)
local full = micros + interval * burst
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)

local function store(time)
  redis.call('SET', KEYS[1], string.format('%.0f', time), 'PX', math.ceil((time - micros) / 1000))
end

if counted > full then
  -- The clock was set back. Nobody is locked out for longer than after a burst.
  counted = full
  store(counted)
end
local next = math.max(counted, micros) + interval * many
if next > full then return math.ceil(next - full) end
store(next)
return 0
