import { createHash, generateKeyPairSync, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Contents } from './bill-of-materials.ts'
import { envelope, provenanceStatement, statementOf, UNKNOWN_BUILDER } from './provenance.ts'

const CONTENTS: Contents = {
  version: '1.2.3',
  commit: '3'.repeat(40),
  modified: false,
  time: 1_767_323_045,
  packages: [],
  runtimes: [
    {
      target: 'linux-x64',
      name: '@oven/bun-linux-x64',
      version: '1.4.5',
      purl: 'pkg:npm/%40oven/bun-linux-x64@1.4.5',
      archiveSha512: '5'.repeat(128),
      executable: 'bin/bun',
      executableSha256: '2'.repeat(64),
    },
  ],
  libraries: [],
  system: [],
}
const ARTEFACTS = [{ name: 'svc-1.2.3-linux-x64.tar.gz', sha256: '1'.repeat(64) }]
const PARAMETERS = {
  targets: ['linux-x64'],
  images: false,
  packages: false,
  url: '',
  upgradeUrl: '',
}

const statement = (changes: Partial<Contents> = {}) =>
  provenanceStatement({ ...CONTENTS, ...changes }, ARTEFACTS, PARAMETERS, UNKNOWN_BUILDER)

test('the statement names artefacts, parameters, sources, runtime and builder', () => {
  const lock = createHash('sha256').update(readFileSync('package-lock.json')).digest('hex')
  expect(JSON.parse(statement())).toEqual({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'svc-1.2.3-linux-x64.tar.gz', digest: { sha256: '1'.repeat(64) } }],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:svc:build:release:1',
        externalParameters: {
          targets: ['linux-x64'],
          images: false,
          packages: false,
          url: '',
          upgradeUrl: '',
        },
        internalParameters: { sourceDateEpoch: 1_767_323_045 },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: '3'.repeat(40) } },
          { name: 'package-lock.json', digest: { sha256: lock } },
          {
            name: '@oven/bun-linux-x64',
            uri: 'pkg:npm/%40oven/bun-linux-x64@1.4.5',
            digest: { sha512: '5'.repeat(128) },
          },
          { name: '@oven/bun-linux-x64/bin/bun', digest: { sha256: '2'.repeat(64) } },
        ],
      },
      runDetails: { builder: { id: 'urn:svc:builder:unknown' } },
    },
  })
})

test('the statement says where files differed from the commit, and names no missing commit', () => {
  const sources = (changes: Partial<Contents>) =>
    JSON.parse(statement(changes)).predicate.buildDefinition.resolvedDependencies[0]
  expect(sources({ modified: true }).annotations).toEqual({ modified: 'true' })
  expect(sources({ commit: null }).name).toBe('package-lock.json')
})

test('the envelope is signed over its type and its payload, on one line', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const line = envelope(statement(), privateKey)
  expect(line.trimEnd().split('\n')).toHaveLength(1)
  const { payloadType, payload, signatures } = JSON.parse(line)
  expect(payloadType).toBe('application/vnd.in-toto+json')
  expect(statementOf(line)).toBe(statement())
  const bytes = Buffer.from(payload, 'base64')
  const encoded = Buffer.concat([
    Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${bytes.length} `),
    bytes,
  ])
  const signature = Buffer.from(signatures[0].sig, 'base64')
  expect(verify('sha256', encoded, publicKey, signature)).toBe(true)
  encoded[encoded.length - 1]! ^= 1
  expect(verify('sha256', encoded, publicKey, signature)).toBe(false)
})

test('a rebuilt release has the statement without a signature', () => {
  const line = envelope(statement(), null)
  expect(JSON.parse(line).signatures).toEqual([])
  expect(statementOf(line)).toBe(statement())
})
