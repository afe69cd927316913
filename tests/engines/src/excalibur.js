// Excalibur, with its canvas renderer. It cancels `pointerdown` on its canvas
// itself. It would also focus the window itself; this is switched off, as in
// games that share a page with others. If its update loop throws an error, it
// catches the error, writes it to the console, and stops.

import {
  Actor,
  Canvas,
  CollisionType,
  Color,
  DisplayMode,
  Engine,
  Flags,
  Font,
  Label,
  vec,
} from "excalibur";

import { begin } from "./record.js";
import { HEIGHT, PICTURES, SIZE, SPRITES, WIDTH, draw, place } from "./scene.js";

const record = begin("excalibur");

Flags.useCanvasGraphicsContext();

const engine = new Engine({
  width: WIDTH,
  height: HEIGHT,
  displayMode: DisplayMode.Fixed,
  backgroundColor: Color.fromHex("#10131a"),
  grabWindowFocus: false,
  suppressPlayButton: true,
});

const pictures = Array.from(
  { length: PICTURES },
  (_, number) =>
    new Canvas({
      width: SIZE,
      height: SIZE,
      cache: true,
      draw: (context) => draw(context, number),
    }),
);
const actors = Array.from({ length: SPRITES }, (_, index) => {
  const actor = new Actor({ collisionType: CollisionType.PreventCollision });
  actor.graphics.use(pictures[index % PICTURES]);
  engine.add(actor);
  return actor;
});
const line = new Label({
  text: "",
  pos: vec(8, 8),
  color: Color.White,
  font: new Font({ family: "monospace", size: 16 }),
});
engine.add(line);

engine.input.keyboard.on("press", ({ value }) => record.key(value));

let seconds = 0;
engine.on("preframe", () => record.frameBegins());
engine.on("preupdate", ({ elapsed }) => {
  record.update();
  seconds += elapsed / 1000;
  actors.forEach((actor, index) => {
    const { x, y, turn } = place(index, seconds);
    actor.pos.setTo(x, y);
    actor.rotation = turn;
  });
  line.text = record.line;
});
engine.on("postframe", () => record.frameEnds());

engine.start();
