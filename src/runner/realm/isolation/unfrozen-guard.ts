/**
 * Detects changes of the unfrozen intrinsics by a call, and reverts them. No code of a call runs
 * here, nothing iterates and no method of an array is used: one of them may be what was changed.
 */
import { takeDefinitions } from './definitions.ts'
import { type EngineProperties, UNFROZEN } from './unfrozen.ts'

type Unfrozen = Record<string | symbol, unknown>

/** An unfrozen object as it was when the script had loaded. */
interface Remembered {
  readonly one: Unfrozen
  readonly prototype: object | null
  readonly keys: readonly (string | symbol)[]
  readonly descriptors: readonly PropertyDescriptor[]
  /** Returns whether the properties of the engine are what they were. */
  readonly isSame: () => boolean
  /** Count of its enumerable properties. */
  readonly enumerableCount: number
  readonly stack: unknown
  /** False if the code of the Workspace added to it while it loaded. */
  readonly isPlain: boolean
}

const { ownKeys, deleteProperty, getOwnPropertyDescriptor, defineProperty } = Reflect
const { getPrototypeOf, setPrototypeOf, isExtensible } = Reflect
const { keys: enumerableKeys } = Object

let remembered: readonly Remembered[] = []

/** Remembers the unfrozen objects as they are; `properties` are in the order of UNFROZEN. */
export function rememberUnfrozen(properties: readonly EngineProperties[]): void {
  remembered = UNFROZEN.map((one, i) => remember(one, properties[i]!))
}

function remember(one: object, { count, remember }: EngineProperties): Remembered {
  const keys = ownKeys(one)
  return {
    one: one as Unfrozen,
    prototype: getPrototypeOf(one),
    keys,
    descriptors: keys.map((key) => getOwnPropertyDescriptor(one, key)!),
    isSame: remember(one),
    enumerableCount: enumerableKeys(one).length,
    stack: (one as { stack?: unknown }).stack,
    isPlain: keys.length === count,
  }
}

/**
 * Restores what was changed and returns the name of the first change, or null. Throws if a call
 * made a change that cannot be undone: the process is of no use to the next call then.
 */
export function restoreUnfrozen(): string | null {
  let changed: string | null = null
  const wasDefined = takeDefinitions()
  for (let i = 0; i < remembered.length; i++) {
    const state = remembered[i]!
    if (!wasDefined && isUntouched(state)) continue
    const first = firstChange(state)
    if (first === null) continue
    changed ??= first
    restore(state)
    if (firstChange(state) === null) continue
    throw new Error(`"${first}" of Array or its prototype was changed irreversibly`)
  }
  return changed
}

/**
 * Checks all that can change without a definition; Error.captureStackTrace adds a hidden `stack`.
 * An accessor that was not defined is enumerable, so none runs in this order.
 */
function isUntouched(state: Remembered): boolean {
  const { one, prototype, isPlain, isSame, enumerableCount, stack } = state
  if (!isPlain || getPrototypeOf(one) !== prototype) return false
  if (enumerableKeys(one).length !== enumerableCount || !isExtensible(one)) return false
  return isSame() && one.stack === stack
}

function firstChange({ one, prototype, keys, descriptors }: Remembered): string | null {
  if (getPrototypeOf(one) !== prototype) return '__proto__'
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!
    if (!isEqual(descriptors[i]!, getOwnPropertyDescriptor(one, key))) return String(key)
  }
  const now = ownKeys(one)
  for (let i = 0; i < now.length; i++) if (!includes(keys, now[i]!)) return String(now[i])
  return isExtensible(one) ? null : 'a property'
}

function isEqual(own: PropertyDescriptor, now: PropertyDescriptor | undefined): boolean {
  if (now?.enumerable !== own.enumerable || now?.configurable !== own.configurable) return false
  const { value, writable, get, set } = own
  return now?.value === value && now?.writable === writable && now?.get === get && now?.set === set
}

function includes(keys: Remembered['keys'], key: string | symbol): boolean {
  for (let i = 0; i < keys.length; i++) if (keys[i] === key) return true
  return false
}

/** Restores the own properties first: everything else works with these methods and iterators. */
function restore({ one, prototype, keys, descriptors }: Remembered): void {
  setPrototypeOf(one, prototype)
  for (let i = 0; i < keys.length; i++) defineProperty(one, keys[i]!, descriptors[i]!)
  const now = ownKeys(one)
  for (let i = 0; i < now.length; i++) {
    if (!includes(keys, now[i]!)) deleteProperty(one, now[i]!)
  }
}
