-- Records that a page shows the game to a player now. Returns the milliseconds since the player's
-- previous heartbeat on any page (0 if there was none, and negative if the clock was set back), and
-- what became of the heartbeat: 0, 1 if the page is new to this player here, or 2 if nothing was
-- recorded because the player has another shard.
--
-- KEYS[5], of the first shard in a cluster: exists while the audience has several shards
-- ARGV: player, page, for how many milliseconds a heartbeat counts, how many pages a player has at
--       most, how many players are forgotten at most, for how many milliseconds the keys are kept,
--       how many players the only shard of an audience has at most, the player's shard of several,
--       1 if the audience is known to have several
local player, page = ARGV[1], ARGV[2]
local spread = KEYS[5]
if spread and ARGV[8] ~= '0' and redis.call('EXISTS', spread) == 1 then return {0, 2} end
local counted, most, forgotten, kept =
  tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- A page has one player.
local before = redis.call('HGET', pages, page)
if before ~= player then
  if before then
    local seen = read(before)
    seen[page] = nil
    write(before, seen)
  end
  redis.call('HSET', pages, page, player)
end

-- Pages that were silent for too long do not count any more, and of too many the oldest is replaced.
local seen = read(player)
local count, oldest = 0, nil
for known, at in pairs(seen) do
  if known ~= page then
    if math.abs(now - at) > counted then
      seen[known] = nil
      redis.call('HDEL', pages, known)
    else
      count = count + 1
      if not oldest or at < seen[oldest] then oldest = known end
    end
  end
end
if count >= most then
  seen[oldest] = nil
  redis.call('HDEL', pages, oldest)
end
seen[page] = now
write(player, seen)

local last = redis.call('ZSCORE', beats, player)
redis.call('ZADD', beats, now, player)

-- Players who were silent for too long are forgotten, a few with each heartbeat.
local function forget(from, to)
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', beats, from, to, 'LIMIT', 0, forgotten)) do
    for known in pairs(read(gone)) do
      redis.call('HDEL', pages, known)
    end
    write(gone, {})
    redis.call('ZREM', beats, gone)
  end
end
forget('-inf', string.format('(%.0f', now - counted))
-- The clock was set back.
forget(string.format('(%.0f', now + counted), '+inf')

if spread and (ARGV[9] == '1' or redis.call('ZCARD', beats) > tonumber(ARGV[7])) then
  redis.call('SET', spread, 1)
end

for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, kept)
end
return {last and now - tonumber(last) or 0, before == player and 0 or 1}
