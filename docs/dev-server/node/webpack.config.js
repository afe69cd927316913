import { platform } from "./platform.js";

export default {
  mode: "development",
  entry: "./src/main.js",
  devServer: {
    host: "localhost",
    port: Number(process.env.PORT ?? 5173),
    static: process.env.FOLDER ?? "public",
    setupMiddlewares: (middlewares) => [
      {
        name: "platform",
        middleware: (request, response, next) => platform(request, response) || next(),
      },
      ...middlewares,
    ],
  },
};
