-- Returns the number of current players.
--
-- KEYS: playing. ARGV: for how many milliseconds a heartbeat counts
local counted = tonumber(ARGV[1])
return redis.call('ZCOUNT', KEYS[1],
  string.format('%.0f', now - counted), string.format('%.0f', now + counted))
