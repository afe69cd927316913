// Moves the rocks. A blast throws them all far away, once.

addEventListener("message", ({ data: shared }) => {
  const counts = new Int32Array(shared, 0, 2);
  const places = new Float32Array(shared, 8);
  for (let at = 0; at < places.length; at += 1) places[at] = Math.sin(at * 12.9) * 6;
  let blasts = 0;
  setInterval(() => {
    const wanted = Atomics.load(counts, 1);
    for (let at = 0; at < places.length; at += 1) {
      places[at] += Math.sin(at + counts[0] / 50) / 100 + (wanted > blasts ? 60 : 0);
    }
    blasts = wanted;
    Atomics.add(counts, 0, 1);
  }, 16);
});
