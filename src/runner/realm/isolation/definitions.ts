/** Detects definitions of properties that `Object.keys` does not list. */

const { apply, defineProperty } = Reflect
let called = false

/** Wraps the functions that can define such a property. */
export function watchDefinitions(): void {
  watch(Object, 'defineProperty')
  watch(Object, 'defineProperties')
  watch(Reflect, 'defineProperty')
}

function watch<Name extends string>(
  owner: Record<Name, (...args: never) => unknown>,
  name: Name,
): void {
  const original = owner[name]
  const { [name as string]: wrapper } = {
    [name](this: unknown, ...args: unknown[]): unknown {
      called = true
      return apply(original, this, args)
    },
  }
  defineProperty(wrapper!, 'length', { value: original.length })
  defineProperty(owner, name, { value: wrapper })
}

/** Tells whether one of the functions was called since the last time. */
export function takeDefinitions(): boolean {
  const wasCalled = called
  called = false
  return wasCalled
}
