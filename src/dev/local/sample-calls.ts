/** The command line that an author can paste to call a first Function. */
import type { FunctionManifest } from '../../value/manifest.ts'

export interface SampleOptions {
  readonly url: string
  readonly applicationKey: string
  readonly target: string
  readonly functions: readonly FunctionManifest[]
}

/** Prefers a Query; returns null where no public Function can be called without arguments. */
export function sampleCall({ url, applicationKey, target, functions }: SampleOptions) {
  const callable = functions.filter(
    ({ visibility, clients, auth, arguments: fields, kind }) =>
      visibility === 'public' &&
      clients.includes('public') &&
      (auth === 'none' || auth === 'optional') &&
      kind !== 'mutation' &&
      Object.values(fields).every(({ type }) => type === 'optional'),
  )
  const chosen = callable.find(({ kind }) => kind === 'query') ?? callable[0]
  if (chosen === undefined) return null
  const body = JSON.stringify({
    ...{ version: 1, target, function: chosen.name },
    arguments: { type: 'object', value: [] },
  })
  const headers = [
    `-H 'Content-Type: application/json'`,
    `-H 'X-Service-Key: ${applicationKey}'`,
  ].join(' ')
  return `curl ${url}/v1/${chosen.kind} ${headers} -d '${body}'`
}
