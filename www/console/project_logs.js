// `/projects/<slug>/logs`: what the game's pages have logged.

import { openTab } from "./project.js";
import { log } from "./search.js";

openTab(log);
