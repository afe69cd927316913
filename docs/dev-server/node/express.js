import express from "express";
import { platform } from "./platform.js";

const app = express();
app.use((request, response, next) => platform(request, response) || next());
app.use(express.static(process.env.FOLDER ?? "dist"));
app.listen(Number(process.env.PORT ?? 5173), "localhost");
