// `/projects/<slug>`: the first tab: how the game is doing, in numbers.

import { overview } from "./overview.js";
import { openTab } from "./project.js";
import { undeployed } from "./undeployed.js";
import { firstUpload } from "./upload.js";

openTab(undeployed, firstUpload, overview);
