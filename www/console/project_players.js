// `/projects/<slug>/players`: who plays the game.

import { players } from "./players.js";
import { openTab } from "./project.js";

openTab(players);
