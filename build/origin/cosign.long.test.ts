/**
 * Goal: cosign verifies signatures and provenance without a network. Method: the program itself,
 * from the PATH, with proxies that do not answer. It is skipped where there is none: install it
 * with `go install github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5`.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest'
import { releaseKeys } from './installer-fixture.ts'
import { writeSignatures } from './keys.ts'
import { envelope, provenanceStatement, UNKNOWN_BUILDER } from './provenance.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-cosign-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function cosign({ skip }: TestContext, ...args: readonly string[]) {
  const proxy = 'http://127.0.0.1:1'
  const env = { PATH: process.env.PATH, HOME: folder, HTTPS_PROXY: proxy, HTTP_PROXY: proxy }
  const whole = [...args, '--key', 'release.pub', '--insecure-ignore-tlog=true']
  const result = spawnSync('cosign', whole, { cwd: folder, encoding: 'utf8', env })
  if (result.error !== undefined) skip('cosign is not on the PATH')
  return result
}

test('cosign verifies the list of digests, and rejects a changed one', (context) => {
  writeSignatures(folder, 'list\n', 'svc 1.2.3', releaseKeys())
  writeFileSync(join(folder, 'SHA256SUMS'), 'list\n')
  const blob = ['verify-blob', '--signature', 'SHA256SUMS.sig', 'SHA256SUMS']
  expect(cosign(context, ...blob)).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('Verified OK'),
  })
  writeFileSync(join(folder, 'SHA256SUMS'), 'lisT\n')
  const changed = cosign(context, ...blob)
  expect(changed.status).not.toBe(0)
  expect(changed.stderr).toContain('invalid signature')
})

test('cosign verifies the provenance of an artefact, and rejects another one', (context) => {
  const keys = releaseKeys()
  writeSignatures(folder, '', 'svc 1.2.3', keys)
  const [artefact, other] = [join(folder, 'artefact'), join(folder, 'other')]
  writeFileSync(artefact, 'bytes')
  writeFileSync(other, 'other bytes')
  const sha256 = createHash('sha256').update('bytes').digest('hex')
  const statement = provenanceStatement(
    {
      version: '1.2.3',
      commit: '3'.repeat(40),
      modified: false,
      time: 0,
      packages: [],
      runtimes: [],
      libraries: [],
      system: [],
    },
    [{ name: 'artefact', sha256 }],
    { targets: [], images: false, packages: false, url: '', upgradeUrl: '' },
    UNKNOWN_BUILDER,
  )
  writeFileSync(join(folder, 'provenance'), envelope(statement, keys.signer))
  const attestation = ['verify-blob-attestation', '--signature', 'provenance']
  const whole = [...attestation, '--type', 'slsaprovenance1']
  expect(cosign(context, ...whole, artefact)).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('Verified OK'),
  })
  const rejected = cosign(context, ...whole, other)
  expect(rejected.status).not.toBe(0)
  expect(rejected.stderr).toContain('no matching subject digest')
})
