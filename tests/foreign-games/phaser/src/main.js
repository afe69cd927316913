// A ship gathers stars: arrow keys move it. Pictures, a level and a sound are
// loaded as Phaser games load them, by their names.

import Phaser from "phaser";

import shipUrl from "./ship.png?no-inline";

class Run extends Phaser.Scene {
  preload() {
    this.load.image("ship", shipUrl);
    this.load.svg("star", "assets/star.svg", { width: 24, height: 24 });
    this.load.json("level", "assets/level.json");
    this.load.audio("ping", "assets/ping.wav");
  }

  create() {
    const { start, stars } = this.cache.json.get("level");
    this.ship = this.add.image(start.x, start.y, "ship");
    this.stars = stars.map(({ x, y }) => this.add.image(x, y, "star"));
    this.gathered = 0;
    this.input.keyboard.on("keydown-RIGHT", () => this.move(40));
    this.input.keyboard.on("keydown-LEFT", () => this.move(-40));
    document.body.dataset.state = "ready";
  }

  move(by) {
    this.ship.x += by;
    const there = this.stars.filter((star) => star.active && Math.abs(star.x - this.ship.x) < 20);
    for (const star of there) {
      star.destroy();
      this.gathered += 1;
      this.sound.play("ping");
    }
    document.body.dataset.state = `gathered ${this.gathered}`;
  }
}

new Phaser.Game({
  type: Phaser.AUTO,
  width: 480,
  height: 270,
  parent: document.body,
  banner: false,
  scene: Run,
});
