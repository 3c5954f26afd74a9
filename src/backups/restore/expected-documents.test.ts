import { expect, test } from 'vitest'
import { leafDigest, MerkleTree } from '../format/merkle-tree.ts'
import { ExpectedDocuments } from './expected-documents.ts'

const changed = (id: number, leaf: string | null) => ({
  id: Uint8Array.of(id),
  digest: leaf === null ? null : leafDigest(leaf),
})

function expectedOf(base: readonly number[], changes: readonly ReturnType<typeof changed>[]) {
  const expected = new ExpectedDocuments(changes)
  for (const id of base) expected.add(Uint8Array.of(id), leafDigest(`base ${id}`))
  return expected.finish()
}

function treeOf(...leaves: readonly string[]) {
  const tree = new MerkleTree()
  for (const leaf of leaves) tree.add(leaf)
  return { documents: leaves.length, merkle: tree.root() }
}

test('changed documents take their places among those of the base', () => {
  const changes = [
    changed(0, 'new 0'),
    changed(2, 'new 2'),
    changed(3, null),
    changed(4, null),
    changed(5, 'new 5'),
    changed(9, 'new 9'),
  ]
  expect(expectedOf([1, 3, 5, 7], changes)).toEqual(
    treeOf('new 0', 'base 1', 'new 2', 'new 5', 'base 7', 'new 9'),
  )
})

test('the documents are those of the base if nothing changed', () => {
  expect(expectedOf([1, 2, 3], [])).toEqual(treeOf('base 1', 'base 2', 'base 3'))
  expect(expectedOf([], [])).toEqual(treeOf())
  expect(expectedOf([1], [changed(1, null)])).toEqual(treeOf())
})
