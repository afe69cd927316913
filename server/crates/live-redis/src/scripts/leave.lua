-- Records that a page was closed, whoever its player was. Returns whether it was known, or 2 if it was
-- not and the audience has several shards.
--
-- KEYS[5], of the first shard in a cluster: exists while the audience has several shards
-- ARGV: page
local page = ARGV[1]
local player = redis.call('HGET', pages, page)
if not player then
  return KEYS[5] and redis.call('EXISTS', KEYS[5]) == 1 and 2 or 0
end
redis.call('HDEL', pages, page)
local seen = read(player)
seen[page] = nil
write(player, seen)
return 1
