// `/projects/<slug>/errors/<id>`: everything about the errors of one cause.

import { errorGroup } from "./error_group.js";
import { openTab } from "./project.js";

openTab(errorGroup);
