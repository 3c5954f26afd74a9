/**
 * Writes the bill of materials of a release as CycloneDX 1.6 in JSON: what the executables and the
 * images contain. The same release gives the same bytes on every machine.
 */
import { createHash } from 'node:crypto'
import { Contrib, Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library'
import type { BundledPackage, RuntimeLibrary } from './packages.ts'
import { lockEntry, lockedSha512, npmPurl, type Runtime, type SystemPackage } from './parts.ts'

export interface Contents {
  readonly version: string
  /** All digits of the commit; null outside a checkout. */
  readonly commit: string | null
  /** True if tracked files differ from the commit. */
  readonly modified: boolean
  /** Unix seconds of the sources. */
  readonly time: number
  readonly packages: readonly BundledPackage[]
  readonly runtimes: readonly Runtime[]
  readonly libraries: readonly RuntimeLibrary[]
  readonly system: readonly SystemPackage[]
}

/** Names of the properties that say which sources a release was built from. */
export const COMMIT_PROPERTY = 'svc:source:commit'
export const MODIFIED_PROPERTY = 'svc:source:modified'

const { ComponentType, ExternalReferenceType, HashAlgorithm } = Enums
const licences = new Contrib.License.Factories.LicenseFactory((expression) => {
  // The names that package.json may have besides identifiers: combinations of identifiers.
  if (!/^[\w.+() -]*\b(?:AND|OR|WITH)\b[\w.+() -]*$/.test(expression)) throw new Error(expression)
})

/** Returns the text of the file. `artefacts` are the lines of digests that it belongs to. */
export function billOfMaterials(contents: Contents, artefacts: string): string {
  const { version, time, packages, runtimes, libraries, system } = contents
  const product = new Models.Component(ComponentType.Application, 'svc', {
    version,
    bomRef: `svc@${version}`,
    licenses: new Models.LicenseRepository([licences.makeFromString('Apache-2.0')]),
    properties: sourceProperties(contents),
  })
  const parts = [
    ...packages.map(packageComponent),
    ...runtimes.map((runtime) => runtimeComponent(runtime, libraries)),
    ...system.map(systemComponent),
  ]
  for (const part of parts) product.dependencies.add(part.bomRef)
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: product, timestamp: new Date(time * 1000) }),
    components: new Models.ComponentRepository(parts),
    serialNumber: serialNumber(artefacts),
  })
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6)
  const text = new Serialize.JsonSerializer(factory).serialize(bom, { sortLists: true, space: 2 })
  return `${text}\n`
}

function sourceProperties({ commit, modified }: Contents): Models.PropertyRepository {
  return new Models.PropertyRepository([
    ...(commit === null ? [] : [new Models.Property(COMMIT_PROPERTY, commit)]),
    ...(modified ? [new Models.Property(MODIFIED_PROPERTY, 'true')] : []),
  ])
}

/** Returns a UUID of version 8, which is for digests. */
function serialNumber(artefacts: string): string {
  const bytes = createHash('sha256').update(artefacts).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  const at = [0, 8, 12, 16, 20, 32]
  const groups = at.slice(1).map((end, index) => hex.slice(at[index], end))
  return `urn:uuid:${groups.join('-')}`
}

function packageComponent({ name, version, licence, folder }: BundledPackage): Models.Component {
  const [group, plain] = name.startsWith('@') ? name.split('/') : [undefined, name]
  return new Models.Component(ComponentType.Library, plain ?? name, {
    ...(group === undefined ? {} : { group }),
    version,
    // Two folders may have one version of a package.
    bomRef: folder,
    purl: npmPurl(name, version),
    hashes: new Models.HashDictionary([
      [HashAlgorithm['SHA-512'], lockedSha512(lockEntry(folder))],
    ]),
    licenses: new Models.LicenseRepository(
      licence === null ? [] : [licences.makeFromString(licence)],
    ),
  })
}

function runtimeComponent(
  runtime: Runtime,
  libraries: readonly RuntimeLibrary[],
): Models.Component {
  const executable = new Models.Component(ComponentType.File, runtime.executable, {
    bomRef: `${runtime.target}/${runtime.executable}`,
    hashes: new Models.HashDictionary([[HashAlgorithm['SHA-256'], runtime.executableSha256]]),
  })
  const linked = libraries.map(
    ({ name, version, licence, url }) =>
      new Models.Component(ComponentType.Library, name, {
        ...(version === null ? {} : { version }),
        bomRef: `${runtime.target}/${name}`,
        licenses: new Models.LicenseRepository([licences.makeFromString(licence)]),
        externalReferences: new Models.ExternalReferenceRepository([
          new Models.ExternalReference(url, ExternalReferenceType.Website),
        ]),
      }),
  )
  return new Models.Component(ComponentType.Platform, runtime.name.split('/')[1]!, {
    group: '@oven',
    version: runtime.version,
    description: `The runtime Bun in the executable for ${runtime.target}`,
    bomRef: `runtime/${runtime.target}`,
    purl: runtime.purl,
    hashes: new Models.HashDictionary([[HashAlgorithm['SHA-512'], runtime.archiveSha512]]),
    licenses: new Models.LicenseRepository([licences.makeFromString('MIT')]),
    components: new Models.ComponentRepository([executable, ...linked]),
  })
}

function systemComponent({ name, version, purl, sha256 }: SystemPackage): Models.Component {
  return new Models.Component(ComponentType.Library, name, {
    group: 'debian',
    version,
    bomRef: purl,
    purl,
    hashes: new Models.HashDictionary([[HashAlgorithm['SHA-256'], sha256]]),
    licenses: new Models.LicenseRepository([licences.makeFromString('LGPL-2.1-or-later')]),
  })
}
