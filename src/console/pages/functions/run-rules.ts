/** Rules of a run: who may run a Function, its effects, and the command that does the same. */
import { printableJsonLine } from '../../../client/visible-text.ts'
import type { Capability } from '../../../value/capabilities.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { FunctionField } from './function-field.ts'

/** Characters of arguments in a command; longer ones are read from a file. */
const COMMAND_CHARACTERS_MAX = 8_000

/** Returns why the operator cannot run the Function; null if it can. */
export function obstacleOf(
  { visibility, auth }: Pick<FunctionField, 'visibility' | 'auth'>,
  may: (capability: Capability) => boolean,
): string | null {
  if (!may('functions:invoke')) return 'Your grants do not include functions:invoke.'
  if (visibility === 'internal' && !may('data:write')) {
    return 'It is internal: to run it, an operator needs data:write too.'
  }
  const needsIdentity = auth !== 'none' && auth !== 'optional'
  return needsIdentity
    ? `It requires an identity (${auth}), which an operator does not have. Use svc call with a key.`
    : null
}

/** Names what a run may change, a sentence each. */
export function effectsOf(
  { kind, uses: { network, secrets, storage } }: Pick<FunctionField, 'kind' | 'uses'>,
  target: string,
  environmentName: string,
): string[] {
  const where = `the Environment ${environmentName}`
  const asOperator = `It runs at ${target} in your name and without the identity of a user.`
  if (kind === 'mutation') {
    return [`It may insert, change and delete documents and schedule runs in ${where}.`, asOperator]
  }
  return [
    `It may run Mutations, which change documents of ${where}, and cannot be undone.`,
    ...(network.length > 0 ? [`It may send requests to ${network.join(', ')}.`] : []),
    ...(secrets.length > 0 ? [`It uses the secrets ${secrets.join(', ')}.`] : []),
    ...(storage === 'none' ? [] : [`It may ${storage} files.`]),
    asOperator,
  ]
}

/** Returns the words after `svc` that run the Function with these arguments. */
export function callText(name: string, target: string, plain: Json): string {
  const given = shellQuoted(printableJsonLine(plain))
  const written = given.length > COMMAND_CHARACTERS_MAX ? '--args-file FILE' : given
  return `call ${shellQuoted(name)} ${written} --operator --target ${shellQuoted(target)}`
}
