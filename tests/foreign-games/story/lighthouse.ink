VAR oil = 0
The lamp has gone out, and a ship is near.
-> room

=== room ===
+ [Look for oil] You find a can under the stairs.
  ~ oil = oil + 1
  -> room
+ {oil > 0} [Light the lamp] The beam sweeps over the water. {oil} can of oil was enough.
  -> END
