import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { targetOf } from './installations.ts'

let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-target-'))
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

/** Returns the path of a file that begins as an ELF executable with this loader does. */
function elf(machine: number, loader: string): string {
  const bytes = Buffer.alloc(512)
  bytes.writeUInt32BE(0x7f454c46, 0)
  bytes.writeUInt16LE(machine, 18)
  bytes.writeBigUInt64LE(64n, 32)
  bytes.writeUInt16LE(56, 54)
  bytes.writeUInt16LE(2, 56)
  bytes.writeUInt32LE(6, 64)
  bytes.writeUInt32LE(3, 120)
  bytes.writeBigUInt64LE(256n, 128)
  bytes.writeBigUInt64LE(BigInt(loader.length), 152)
  bytes.write(loader, 256, 'latin1')
  return written(bytes)
}

function machO(machine: number): string {
  const bytes = Buffer.alloc(512)
  bytes.writeUInt32BE(0xcffaedfe, 0)
  bytes.writeUInt32LE(machine, 4)
  return written(bytes)
}

function written(bytes: Uint8Array | string): string {
  const path = join(work, 'executable')
  writeFileSync(path, bytes)
  return path
}

test('the target of an executable is read from its head', () => {
  expect(targetOf(elf(62, '/lib64/ld-linux-x86-64.so.2'))).toBe('linux-x64')
  expect(targetOf(elf(62, '/lib/ld-musl-x86_64.so.1'))).toBe('linux-x64-musl')
  expect(targetOf(elf(183, '/lib/ld-linux-aarch64.so.1'))).toBe('linux-arm64')
  expect(targetOf(elf(183, '/lib/ld-musl-aarch64.so.1'))).toBe('linux-arm64-musl')
  expect(targetOf(machO(0x100000c))).toBe('darwin-arm64')
  expect(targetOf(machO(0x1000007))).toBe('darwin-x64')
})

test('another file has no target', () => {
  expect(targetOf(elf(40, '/lib/ld-linux.so.3'))).toBeNull()
  expect(targetOf(machO(7))).toBeNull()
  for (const bytes of ['', '#!/bin/sh\n', Buffer.alloc(100_000, 0xff)]) {
    expect(targetOf(written(bytes))).toBeNull()
  }
})

test.skipIf(process.platform !== 'linux')(
  'the runtime of this test has the target of this machine (skipped: it is not Linux)',
  () => {
    expect(targetOf(process.execPath)).toMatch(new RegExp(`^linux-${process.arch}(?:-musl)?$`))
  },
)
