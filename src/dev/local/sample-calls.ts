/** The command line that an author can paste to call a first Function. */
import { quoted } from '../../client/visible-text.ts'
import type { FunctionManifest } from '../../value/manifest.ts'

/** Prefers a Query; returns null where no public Function can be called without arguments. */
export function sampleCall(
  rootPath: string,
  functions: readonly FunctionManifest[],
): string | null {
  const callable = functions.filter(
    ({ visibility, clients, auth, arguments: fields, kind }) =>
      visibility === 'public' &&
      clients.includes('public') &&
      (auth === 'none' || auth === 'optional') &&
      kind !== 'mutation' &&
      Object.values(fields).every(({ type }) => type === 'optional'),
  )
  const chosen = callable.find(({ kind }) => kind === 'query') ?? callable[0]
  return chosen === undefined ? null : `svc call ${chosen.name} --root ${quoted(rootPath)}`
}
