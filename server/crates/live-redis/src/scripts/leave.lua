-- Records that a page was closed, whoever its player was. Returns whether it was known.
--
-- ARGV: page
local page = ARGV[1]
local player = redis.call('HGET', pages, page)
if not player then return 0 end
redis.call('HDEL', pages, page)
local seen = read(player)
seen[page] = nil
write(player, seen)
return 1
