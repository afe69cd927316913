import { defineConfig, type ProxyOptions } from "vite";
import { dist } from "./dev/settings.ts";
import platform from "./dev/vite-plugin-platform.ts";

/** The local backend, as `npm run dev` started it. */
const backend: ProxyOptions = {
  target: `http://127.0.0.1:${process.env.BACKEND_PORT || 8788}`,
  ws: true,
  configure: (proxy) => {
    // In production, too, a backend that is away is answered for with a problem.
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
  // With its source map the Build page shows an error where the sources have it. The map is deployed
  // with the rest, so that anybody can read them; `false` keeps them to yourself.
  build: { outDir: dist, sourcemap: true },
  server,
  preview: server,
});
