/**
 * Goal: the executables for other machines are whole. Method: each is compiled as a release does
 * it, then its signature is checked page by page, or it is started under the emulator and the C
 * library of Debian's packages. Without them, or without the registry of the bases, it is skipped.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { VERSION } from '../src/value/version.ts'
import { BUNDLE, ROOT } from './bundle.ts'
import { compileTarget } from './compile.ts'
import { readSignature } from './runtime/mach-o.ts'
import { fetchBase, TARGETS } from './targets.ts'

const QEMU = '/usr/bin/qemu-aarch64-static'
/** Installed by the package libc6-arm64-cross. */
const ARM64_LIBRARIES = '/usr/aarch64-linux-gnu'
const MUSL_LOADER = '/lib/ld-musl-x86_64.so.1'
const AD_HOC = 0x2
const HARDENED = 0x10000

/** Path of the executable of a target; skips the test where its base cannot be fetched. */
function compiled(name: string, { skip }: TestContext): string {
  const target = TARGETS.find((each) => each.name === name)!
  if (!existsSync(BUNDLE)) skip('there is no bundle: run npm run build')
  try {
    fetchBase(target)
  } catch (error) {
    if (!String(error).includes('npm pack failed')) throw error
    skip('the registry of the bases cannot be reached')
  }
  compileTarget(target)
  return join(ROOT, 'dist/targets', name, 'svc-server')
}

function required(path: string, debianPackage: string, { skip }: TestContext): void {
  if (!existsSync(path)) skip(`${path} is missing: install ${debianPackage}`)
}

function run(...[command, ...args]: [string, ...string[]]) {
  return spawnSync(command, [...args, 'version'], { encoding: 'utf8', env: {} })
}

test.for(['darwin-x64', 'darwin-arm64'])(
  'every page of %s has the digest that its signature says',
  (name, context) => {
    const { flags, pages, ...rest } = readSignature(readFileSync(compiled(name, context)))
    expect(rest).toMatchObject({ isComplete: true, brokenPages: [] })
    expect(pages).toBeGreaterThan(10_000)
    expect([flags & AD_HOC, flags & HARDENED]).toEqual([AD_HOC, 0])
  },
)

test('the executable for linux-arm64 starts', (context) => {
  required(QEMU, 'qemu-user-static', context)
  required(`${ARM64_LIBRARIES}/lib/ld-linux-aarch64.so.1`, 'libc6-arm64-cross', context)
  const { stderr, stdout } = run(QEMU, '-L', ARM64_LIBRARIES, compiled('linux-arm64', context))
  expect([stderr, stdout]).toEqual(['', `svc-server ${VERSION} (linux-arm64)\n`])
})

/** Debian has no libstdc++ for musl: there the loader must miss it and no other library. */
test('the executable for linux-x64-musl starts, or lacks libstdc++ alone', (context) => {
  required(MUSL_LOADER, 'musl', context)
  const { stderr, stdout } = run(compiled('linux-x64-musl', context))
  const missing = [...stderr.matchAll(/loading shared library (\S+):/g)].map(([, name]) => name)
  if (missing.length > 0) expect(missing).toEqual(['libstdc++.so.6'])
  else expect([stderr, stdout]).toEqual(['', `svc-server ${VERSION} (linux-x64)\n`])
})
