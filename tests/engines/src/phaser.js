// Phaser, with its canvas renderer. It cancels `mousedown` on its canvas
// itself. It would also focus the window itself; this is switched off, as in
// games that share a page with others.

import Phaser from "phaser";

import { begin } from "./record.js";
import { HEIGHT, PICTURES, SPRITES, WIDTH, picture, place } from "./scene.js";

const record = begin("phaser");

class Scene extends Phaser.Scene {
  create() {
    for (let number = 0; number < PICTURES; number += 1) {
      this.textures.addCanvas(`picture-${number}`, picture(number));
    }
    this.sprites = Array.from({ length: SPRITES }, (_, index) =>
      this.add.image(0, 0, `picture-${index % PICTURES}`),
    );
    this.line = this.add.text(8, 8, "", { fontSize: "16px" });
    // If there are several presses in one frame, Phaser passes the earlier ones
    // on again.
    const handed = new WeakSet();
    this.input.keyboard.on("keydown", (event) => {
      if (!handed.has(event)) record.key(event.key);
      handed.add(event);
    });
  }

  update(time) {
    record.update();
    this.sprites.forEach((sprite, index) => {
      const { x, y, turn } = place(index, time / 1000);
      sprite.setPosition(x, y).setRotation(turn);
    });
    this.line.setText(record.line);
  }
}

const game = new Phaser.Game({
  type: Phaser.CANVAS,
  width: WIDTH,
  height: HEIGHT,
  backgroundColor: "#10131a",
  parent: document.body,
  autoFocus: false,
  audio: { noAudio: true },
  scene: Scene,
});
game.events.on(Phaser.Core.Events.PRE_STEP, () => record.frameBegins());
game.events.on(Phaser.Core.Events.POST_RENDER, () => record.frameEnds());
