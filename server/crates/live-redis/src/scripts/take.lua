-- Counts several events at once against a rate limit, all of them or none. Returns 0, or how many
-- microseconds to wait.
--
-- ARGV[3]: how many there are
local many = math.min(tonumber(ARGV[3]), burst)

if counted > full then
  -- The clock was set back. Nobody is locked out for longer than after a burst.
  counted = full
  store(counted)
end
local next = math.max(counted, micros) + interval * many
if next > full then return math.ceil(next - full) end
store(next)
return 0
