// The scene that every game shows: some hundred sprites on their rounds, so
// that a frame costs what a frame of a small game costs.

export const WIDTH = 640;
export const HEIGHT = 360;
export const SPRITES = 400;

/** Where sprite `index` is after `seconds`, and how it is turned. */
export const place = (index, seconds) => {
  const angle = index * 2.4 + seconds * (0.2 + (index % 7) / 10);
  const radius = Math.sqrt((index + 1) / SPRITES);
  return {
    x: WIDTH / 2 + Math.cos(angle) * radius * (WIDTH / 2 - 16),
    y: HEIGHT / 2 + Math.sin(angle) * radius * (HEIGHT / 2 - 16),
    turn: angle,
  };
};

/** The picture of a sprite, one of `PICTURES`. */
export const PICTURES = 4;
export const SIZE = 24;

/** Draws picture `number` at the origin of a 2d context. */
export const draw = (context, number) => {
  const hue = 40 + number * 80;
  context.fillStyle = `hsl(${hue} 80% 60%)`;
  context.strokeStyle = `hsl(${hue} 80% 85%)`;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(SIZE - 2, SIZE / 2);
  context.lineTo(3, SIZE - 4);
  context.lineTo(8, SIZE / 2);
  context.lineTo(3, 4);
  context.closePath();
  context.fill();
  context.stroke();
};

/** Picture `number` on a canvas of its own. */
export const picture = (number) => {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE;
  canvas.height = SIZE;
  draw(canvas.getContext("2d"), number);
  return canvas;
};
