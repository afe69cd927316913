// PixiJS, with its canvas renderer. It has no keyboard input of its own, so
// games listen to the window. It cancels touches but not presses of a mouse, so
// games cancel these.

import { Application, Sprite, Text, Texture, UPDATE_PRIORITY } from "pixi.js";

import { begin, cancelPresses } from "./record.js";
import { HEIGHT, PICTURES, SPRITES, WIDTH, picture, place } from "./scene.js";

const record = begin("pixi");

const start = async () => {
  const app = new Application();
  await app.init({
    preference: "canvas",
    width: WIDTH,
    height: HEIGHT,
    background: "#10131a",
    antialias: true,
  });
  document.body.append(app.canvas);
  cancelPresses(app.canvas);

  const textures = Array.from({ length: PICTURES }, (_, number) => Texture.from(picture(number)));
  const sprites = Array.from({ length: SPRITES }, (_, index) => {
    const sprite = new Sprite({ texture: textures[index % PICTURES], anchor: 0.5 });
    return app.stage.addChild(sprite);
  });
  const line = new Text({
    text: "",
    style: { fill: "white", fontFamily: "monospace", fontSize: 16 },
  });
  line.position.set(8, 8);
  app.stage.addChild(line);

  addEventListener("keydown", (event) => record.key(event.key));

  let seconds = 0;
  app.ticker.add(() => record.frameBegins(), undefined, UPDATE_PRIORITY.INTERACTION + 1);
  app.ticker.add((ticker) => {
    record.update();
    seconds += ticker.deltaMS / 1000;
    sprites.forEach((sprite, index) => {
      const { x, y, turn } = place(index, seconds);
      sprite.position.set(x, y);
      sprite.rotation = turn;
    });
    if (line.text !== record.line) line.text = record.line;
  });
  // The application draws at low priority: this is after it.
  app.ticker.add(() => record.frameEnds(), undefined, UPDATE_PRIORITY.UTILITY);
};

start();
