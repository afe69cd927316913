-- What has been counted against a rate limit, by the generic cell rate algorithm. It stands before
-- the scripts that count.
--
-- KEYS: the time until which events were counted
-- ARGV: the microseconds between two events at the rate, how many events may happen at once
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = micros + interval * burst
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)

local function store(time)
  redis.call('SET', KEYS[1], string.format('%.0f', time), 'PX', math.ceil((time - micros) / 1000))
end
