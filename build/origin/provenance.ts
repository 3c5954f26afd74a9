/**
 * Writes the provenance of a release: a statement of in-toto with the predicate of SLSA 1.0, in a
 * DSSE envelope under the P-256 key of the release.
 */
import { createHash, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../bundle.ts'
import type { Contents } from './bill-of-materials.ts'

const PAYLOAD_TYPE = 'application/vnd.in-toto+json'
/** Says how the parameters are read; CONTRIBUTING.md describes the build. */
const BUILD_TYPE = 'urn:svc:build:release:1'
/** Stands where SVC_RELEASE_BUILDER names no builder. */
export const UNKNOWN_BUILDER = 'urn:svc:builder:unknown'

export interface Artefact {
  readonly name: string
  readonly sha256: string
}

/** Parameters of `npm run release`. */
export interface BuildParameters {
  readonly targets: readonly string[]
  readonly images: boolean
  readonly packages: boolean
  /** The URL that serves the files; empty if none is known. */
  readonly url: string
  /** The URL of the newest release; empty if none is known. */
  readonly upgradeUrl: string
}

/** A file or package that the build was given. */
interface ResourceDescriptor {
  readonly name: string
  readonly uri?: string
  readonly digest: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** Returns the statement as JSON: the same build by the same builder gives the same bytes. */
export function provenanceStatement(
  contents: Contents,
  artefacts: readonly Artefact[],
  parameters: BuildParameters,
  builder: string,
): string {
  return JSON.stringify({
    _type: 'https://in-toto.io/Statement/v1',
    subject: artefacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: parameters,
        internalParameters: { sourceDateEpoch: contents.time },
        resolvedDependencies: dependencies(contents),
      },
      runDetails: { builder: { id: builder } },
    },
  })
}

function dependencies(contents: Contents): ResourceDescriptor[] {
  const { commit, modified, runtimes, system } = contents
  const lock = createHash('sha256').update(readFileSync(join(ROOT, 'package-lock.json')))
  const source = { name: 'source', digest: { gitCommit: commit ?? '' } }
  return [
    ...(commit === null
      ? []
      : [modified ? { ...source, annotations: { modified: 'true' } } : source]),
    { name: 'package-lock.json', digest: { sha256: lock.digest('hex') } },
    ...runtimes.flatMap((runtime) => [
      { name: runtime.name, uri: runtime.purl, digest: { sha512: runtime.archiveSha512 } },
      {
        name: `${runtime.name}/${runtime.executable}`,
        digest: { sha256: runtime.executableSha256 },
      },
    ]),
    ...system.map(({ name, purl, sha256 }) => ({ name, uri: purl, digest: { sha256 } })),
  ]
}

/** Returns the envelope on one line, signed if there is a key. */
export function envelope(statement: string, key: KeyObject | null): string {
  const payload = Buffer.from(statement)
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `
  const signed = Buffer.concat([Buffer.from(head), payload])
  const signatures = key === null ? [] : [{ sig: sign('sha256', signed, key).toString('base64') }]
  const whole = { payloadType: PAYLOAD_TYPE, payload: payload.toString('base64'), signatures }
  return `${JSON.stringify(whole)}\n`
}

/** Returns the statement inside an envelope, whose signature it does not verify. */
export function statementOf(text: string): string {
  return Buffer.from(JSON.parse(text).payload, 'base64').toString()
}
