// `/projects/<slug>/errors`: which errors the game has.

import { errorCounts } from "./error_counts.js";
import { errorGroups } from "./error_groups.js";
import { openTab } from "./project.js";

openTab(errorGroups, errorCounts);
