// Compiles ink at build time, so that the page holds only what plays it.

import { Compiler } from "inkjs/full";

export const ink = () => ({
  name: "ink",
  transform(source, id) {
    if (!id.endsWith(".ink")) return undefined;
    return { code: `export default ${new Compiler(source).Compile().ToJson()}`, map: null };
  },
});
