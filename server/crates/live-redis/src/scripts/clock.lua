-- The time by the clock of Redis, which is the same for all nodes: `micros` in microseconds, `now`
-- in milliseconds. It stands before every script.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
