// A walk through rooms, each with a map and a picture of its own: a click goes
// on to the next one. The engine is LittleJS.

import {
  engineInit,
  mouseWasPressed,
  drawRect,
  setShowSplashScreen,
  vec2,
  Color,
} from "littlejsengine";

const at = (room, kind) => `rooms/${Math.floor(room / 100)}/${room}.${kind}`;

let map = null;
let entering = false;

async function enter(room) {
  if (entering) return;
  entering = true;
  const picture = new Image();
  picture.src = at(room, "svg");
  const [answer] = await Promise.all([fetch(at(room, "json")), picture.decode()]);
  map = await answer.json();
  entering = false;
  document.body.dataset.state = `room ${map.room}, ${map.stones} stones, picture ${picture.naturalWidth}`;
}

setShowSplashScreen(false);
engineInit(
  () => enter(0),
  () => map && mouseWasPressed(0) && enter(map.next),
  () => {},
  () => {
    for (let stone = 0; stone < (map?.stones ?? 0); stone += 1) {
      drawRect(vec2(stone - 6, 0), vec2(0.8), new Color(0.8, 0.7, 0.5));
    }
  },
  () => {},
);
