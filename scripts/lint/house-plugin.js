/**
 * The house's own ESLint rules.
 * - `file-name`: files are kebab-case and named after what they export; names that say nothing
 *   (utils, common, helpers, types, manager) are refused.
 * - `explain-disable`: whoever switches a rule off says why, after ` -- `.
 */
import { basename } from "node:path";

const KEBAB = /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.(test|d|config))?\.[cm]?[jt]sx?$/;
const EMPTY_NAMES = /(^|-)(utils?|commons?|helpers?|types|managers?|misc)(\.|-)/;
const DISABLE = /^\s*eslint-disable(-next-line|-line)?\b/;

const fileName = {
  meta: {
    type: "problem",
    schema: [],
    docs: { description: "kebab-case names that say something" },
  },
  create(context) {
    const name = basename(context.filename);
    return {
      Program(node) {
        if (!KEBAB.test(name)) context.report({ node, message: `name ${name} in kebab-case` });
        if (EMPTY_NAMES.test(name))
          context.report({ node, message: `${name} says nothing: name it after what it exports` });
      },
    };
  },
};

const explainDisable = {
  meta: { type: "problem", schema: [], docs: { description: "a reason with each disabled rule" } },
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments())
          if (DISABLE.test(comment.value) && !/ -- \S/.test(comment.value))
            context.report({ loc: comment.loc, message: "say why, after ` -- `" });
      },
    };
  },
};

export const housePlugin = {
  meta: { name: "house" },
  rules: { "file-name": fileName, "explain-disable": explainDisable },
};
