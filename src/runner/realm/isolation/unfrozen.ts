/** The intrinsics that stay unfrozen: spreading and `map` are three times slower on frozen ones. */

/** `Array`, its prototype and that of its iterators, of the realm in which this module runs. */
export const UNFROZEN: readonly object[] = [
  Array,
  Array.prototype,
  Reflect.getPrototypeOf([].values())!,
]

/**
 * Compares the properties that the engine gives one of them. It is made of source in which their
 * names stand (realm-source.ts), which are read much faster than names from a list.
 */
export interface EngineProperties {
  readonly count: number
  /** Returns a function that tells whether all of them are what they are now. */
  remember(one: object): () => boolean
}
