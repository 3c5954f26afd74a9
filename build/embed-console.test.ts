import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { CONSOLE_ASSETS } from '../src/client/console/assets.generated.ts'
import { isConsoleStale } from './embed-console.ts'

const KIB = 1024

test('the embedded page of the console is the one of its source', async () => {
  expect(await isConsoleStale(join(import.meta.dirname, '..'))).toBe(false)
})

test('the page of the console has at most 250 KiB compressed', () => {
  const sizes = Object.values(CONSOLE_ASSETS).map(({ text }) => gzipSync(text).length)
  const total = sizes.reduce((sum, size) => sum + size, 0)
  expect(total).toBeGreaterThan(10 * KIB)
  expect(total).toBeLessThan(250 * KIB)
})

test('the document of the console has no code and names no other host', () => {
  const { text } = CONSOLE_ASSETS['index.html']!
  expect(text).not.toMatch(/<script(?![^>]* src=)|<style|\son[a-z]+=|\sstyle=/)
  expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
})
