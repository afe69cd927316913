// `/projects/<slug>/errors`: which errors the game has.

import { errorCounts } from "./error_counts.js";
import { openTab } from "./project.js";

openTab(errorCounts);
