import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { withPath } from './files.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

function detailOf(path: string): unknown {
  try {
    withPath(path, () => readFileSync(path))
    return null
  } catch (error) {
    return error instanceof Error && 'detail' in error ? error.detail : error
  }
}

describe('a failure of the file system', () => {
  test('names a file that does not exist in a directory that does', () => {
    const path = join(directory, 'export.zip')
    expect(detailOf(path)).toBe(`${path} does not exist.`)
  })

  test('names the directory if that is missing', () => {
    const missing = join(directory, 'none')
    expect(detailOf(join(missing, 'export.zip'))).toBe(`There is no directory ${missing}.`)
  })

  test('names the directory if that is a file', () => {
    const file = join(directory, 'file')
    writeFileSync(file, '')
    expect(detailOf(join(file, 'export.zip'))).toBe(`There is no directory ${file}.`)
  })
})
