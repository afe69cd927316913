-- Counts events that have happened, and then several at once, all of these or none. Returns 0, or
-- how many microseconds to wait; if there are none, how long the next event must wait.
--
-- ARGV[3], ARGV[4]: how many have happened, how many there are
local open, many = tonumber(ARGV[3]), math.min(tonumber(ARGV[4]), burst)

-- Nodes may have allowed more than there was. What is allowed later makes up for that. After another
-- burst this ends: the clock may have been set back, which must not lock anybody out.
counted = math.max(counted, micros) + interval * open
counted = math.min(counted, full + interval * burst)
local next = counted + interval * math.max(many, 1)
if many > 0 and next <= full then counted = next end
if counted > micros then store(counted) end
if next > full then return math.ceil(next - full) end
return 0
