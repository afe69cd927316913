import { defineConfig, type ProxyOptions } from "vite";
import { dist } from "./dev/settings.ts";
import platform from "./dev/vite-plugin-platform.js";

/** The local backend, which `npm run dev` started. */
const backend: ProxyOptions = {
  target: `http://127.0.0.1:${process.env.BACKEND_PORT || 8788}`,
  ws: true,
  configure: (proxy) => {
    // As in production, a request for a missing backend is answered with a problem.
    proxy.on("error", (_error, _request, response) => {
      if (!("writeHead" in response)) return void response.destroy();
      if (response.headersSent) return void response.end();
      response.writeHead(502, { "Content-Type": "application/problem+json" }).end(
        JSON.stringify({
          type: "urn:platform:backend-unreachable",
          title: "The backend cannot be reached",
          status: 502,
          detail: "The local backend does not answer.",
        }),
      );
    });
  },
};
const server = { port: Number(process.env.PORT || 5173), proxy: { "/api": backend } };

export default defineConfig({
  plugins: [platform()],
  // With the source map, the Build page shows an error at its place in the sources. The map is
  // deployed with the game, so that anybody can read the sources in it; `false` keeps them private.
  build: { outDir: dist, sourcemap: true },
  server,
  preview: server,
});
