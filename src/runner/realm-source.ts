/** The script that prepares a fresh realm. */
import { UNFROZEN } from './realm/isolation/unfrozen.ts'
import { REALM_BUNDLE } from './realm/realm.generated.ts'
import { LANGUAGE_GLOBALS } from './realm/workspace-script.ts'

/**
 * Returns a script whose value is a function from a Bridge and LoadLimits to a Realm. It captures
 * the globals of the language before anything else runs in the realm: code of a Workspace that
 * replaces one of them changes nothing for the code of the realm.
 */
export function realmSource(): string {
  return `(function () { 'use strict'
    const { ${LANGUAGE_GLOBALS.join()} } = globalThis
    ${REALM_BUNDLE}
    const properties = [${UNFROZEN.map(propertiesSource)}]
    return (bridge, limits) => realm.createRealm(bridge, limits, properties)
  })()`
}

/**
 * Source of the EngineProperties of an object: every realm has the same names. A well-known symbol
 * is described by the expression that it is the value of.
 */
function propertiesSource(one: object): string {
  const keys = Reflect.ownKeys(one).map((key) =>
    typeof key === 'string' ? JSON.stringify(key) : key.description,
  )
  const values = keys.map((key, i) => `v${i} = one[${key}]`)
  const comparisons = keys.map((key, i) => `one[${key}] === v${i}`)
  return `{ count: ${keys.length}, remember(one) {
    const ${values.join()}
    return () => ${comparisons.join(' && ')}
  } }`
}
