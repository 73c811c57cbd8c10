/** Standard Schema (https://standardschema.dev) in our words. */

export interface InputIssue {
  /** `img_data`, `words.0.text`; empty: the input itself. */
  readonly path: string;
  readonly message: string;
}
