-- The players of one audience. It stands before the scripts that change them.
--
-- KEYS: playing  ZSET  player -> the last heartbeat of its freshest page
--       beats    ZSET  player -> its last heartbeat, also after its pages were closed
--       pages    HASH  page -> player
--       players  HASH  player -> its pages with their last heartbeats
local playing, beats, pages, players = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function read(player)
  local packed = redis.call('HGET', players, player)
  return packed and cmsgpack.unpack(packed) or {}
end

local function write(player, seen)
  local newest
  for _, at in pairs(seen) do
    if not newest or at > newest then newest = at end
  end
  if newest then
    redis.call('HSET', players, player, cmsgpack.pack(seen))
    redis.call('ZADD', playing, newest, player)
  else
    redis.call('HDEL', players, player)
    redis.call('ZREM', playing, player)
  end
end
