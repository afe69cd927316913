// Rocks in space, drawn with WebGL. A worker moves them in memory that it
// shares with the page, so the page must be isolated from other origins.

import {
  InstancedMesh,
  IcosahedronGeometry,
  Matrix4,
  MeshBasicMaterial,
  PerspectiveCamera,
  Scene,
  TextureLoader,
  WebGLRenderer,
} from "three";

import Simulation from "./simulation.js?worker";

const ROCKS = 300;
const state = document.body.dataset;

async function start() {
  const renderer = new WebGLRenderer();
  renderer.setSize(480, 270);
  document.body.append(renderer.domElement);

  const texture = await new TextureLoader().loadAsync("rock.png");
  const rocks = new InstancedMesh(
    new IcosahedronGeometry(0.3, 1),
    new MeshBasicMaterial({ map: texture }),
    ROCKS,
  );
  rocks.frustumCulled = false;
  const scene = new Scene().add(rocks);
  const camera = new PerspectiveCamera(60, 480 / 270, 0.1, 100);
  camera.position.z = 12;

  // x, y, z of each rock; before them the number of steps and of blasts.
  const shared = new SharedArrayBuffer(8 + ROCKS * 12);
  const counts = new Int32Array(shared, 0, 2);
  const places = new Float32Array(shared, 8);
  new Simulation().postMessage(shared);

  addEventListener("keydown", ({ code }) => code === "Space" && Atomics.add(counts, 1, 1));
  const matrix = new Matrix4();
  renderer.setAnimationLoop(() => {
    for (let rock = 0; rock < ROCKS; rock += 1) {
      rocks.setMatrixAt(
        rock,
        matrix.setPosition(places[rock * 3], places[rock * 3 + 1], places[rock * 3 + 2]),
      );
    }
    rocks.instanceMatrix.needsUpdate = true;
    renderer.render(scene, camera);
    const steps = Atomics.load(counts, 0);
    if (steps > 0)
      state.state = `blasts ${places[2] > 50 ? 1 : 0}, drawn ${renderer.info.render.triangles > 0}`;
  });
}

if (globalThis.crossOriginIsolated) void start();
else state.state = "needs isolation";
