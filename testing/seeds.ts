/**
 * The seed of every random test. `SVC_SEED=<number>` replays a run; each random test prints its
 * seed in that form in its name or its failure.
 */
const given = process.env.SVC_SEED

export const isSeedGiven = given !== undefined
export const SEED = given === undefined ? Date.now() % 2 ** 31 : Number(given) >>> 0
