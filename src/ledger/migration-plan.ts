/** What opening a ledger would run to bring it to this version. */
export interface MigrationPlan {
  /** The number of the last migration that it has seen; 0: it does not exist yet. */
  readonly from: number;
  readonly to: number;
  /** One text for each step, in order; empty where it is up to date. */
  readonly statements: readonly string[];
}
