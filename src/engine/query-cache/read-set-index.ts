/**
 * Finds the owners of read sets, such as cached results, that overlap a commit. Documents are in a
 * map. The intervals of each physical index are in an interval tree: a treap ordered by lower
 * bound, in which every node stores the greatest upper bound of its subtree.
 */
import type { KeyInterval } from '../../documents/keys.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import type { CommitWrites, ReadSet } from '../commits/read-set.ts'

interface TreeNode<Owner> {
  readonly lower: string
  readonly upper: string
  readonly priority: number
  readonly owners: Set<Owner>
  /** The greatest upper bound in the subtree of this node. */
  greatestUpper: string
  left: TreeNode<Owner> | null
  right: TreeNode<Owner> | null
}

export class ReadSetIndex<Owner> {
  readonly #readSets = new TransientMap<Owner, ReadSet>()
  readonly #byDocument = new TransientMap<string, Set<Owner>>()
  readonly #trees = new Map<number, TreeNode<Owner>>()
  #random: number

  /** A random `seed` prevents callers from choosing intervals that degenerate a tree to a list. */
  constructor(seed: number) {
    // xorshift32 never leaves zero.
    this.#random = seed | 0 || 1
  }

  /** Number of owners. */
  get size(): number {
    return this.#readSets.size
  }

  /** Adds an owner or replaces its read set. The read set must not change afterwards. */
  add(owner: Owner, readSet: ReadSet): void {
    this.remove(owner)
    this.#readSets.set(owner, readSet)
    for (const id of readSet.documents) {
      const owners = this.#byDocument.get(id)
      if (owners === undefined) this.#byDocument.set(id, new Set([owner]))
      else owners.add(owner)
    }
    for (const [index, intervals] of readSet.intervals) {
      let root = this.#trees.get(index) ?? null
      for (const interval of intervals) {
        root = insert(root, interval, owner, this.#nextPriority())
      }
      if (root !== null) this.#trees.set(index, root)
    }
  }

  remove(owner: Owner): void {
    const readSet = this.#readSets.get(owner)
    if (readSet === undefined) return
    this.#readSets.delete(owner)
    for (const id of readSet.documents) {
      const owners = this.#byDocument.get(id)
      owners?.delete(owner)
      if (owners?.size === 0) this.#byDocument.delete(id)
    }
    for (const [index, intervals] of readSet.intervals) {
      let root = this.#trees.get(index) ?? null
      for (const interval of intervals) root = remove(root, interval, owner)
      if (root === null) this.#trees.delete(index)
      else this.#trees.set(index, root)
    }
  }

  /** Returns the owners whose read sets overlap the commit. */
  matches(writes: CommitWrites): ReadonlySet<Owner> {
    if (this.#byDocument.size === 0 && this.#trees.size === 0) return NONE
    const found = new Set<Owner>()
    for (const id of writes.documents) {
      for (const owner of this.#byDocument.get(id) ?? []) found.add(owner)
    }
    for (const [index, keys] of writes.keys) {
      const root = this.#trees.get(index)
      if (root === undefined) continue
      for (const key of keys) collect(root, key, found)
    }
    return found
  }

  #nextPriority(): number {
    this.#random ^= this.#random << 13
    this.#random ^= this.#random >>> 17
    this.#random ^= this.#random << 5
    return this.#random
  }
}

const NONE: ReadonlySet<never> = new Set()

function collect<Owner>(node: TreeNode<Owner>, key: string, found: Set<Owner>): void {
  if (node.left !== null && node.left.greatestUpper > key) collect(node.left, key, found)
  if (node.lower > key) return
  if (node.upper > key) for (const owner of node.owners) found.add(owner)
  if (node.right !== null && node.right.greatestUpper > key) collect(node.right, key, found)
}

/** Returns a negative number where the interval belongs to the left of the node. */
function compare<Owner>({ lower, upper }: KeyInterval, node: TreeNode<Owner>): number {
  if (lower !== node.lower) return lower < node.lower ? -1 : 1
  if (upper !== node.upper) return upper < node.upper ? -1 : 1
  return 0
}

function insert<Owner>(
  node: TreeNode<Owner> | null,
  interval: KeyInterval,
  owner: Owner,
  priority: number,
): TreeNode<Owner> {
  if (node === null) {
    const { lower, upper } = interval
    const owners = new Set([owner])
    return { lower, upper, priority, owners, greatestUpper: upper, left: null, right: null }
  }
  const side = compare(interval, node)
  if (side === 0) {
    node.owners.add(owner)
    return node
  }
  if (side < 0) {
    node.left = insert(node.left, interval, owner, priority)
    if (node.left.priority > node.priority) return rotateRight(node, node.left)
  } else {
    node.right = insert(node.right, interval, owner, priority)
    if (node.right.priority > node.priority) return rotateLeft(node, node.right)
  }
  update(node)
  return node
}

function remove<Owner>(
  node: TreeNode<Owner> | null,
  interval: KeyInterval,
  owner: Owner,
): TreeNode<Owner> | null {
  if (node === null) return null
  const side = compare(interval, node)
  if (side === 0) {
    node.owners.delete(owner)
    return node.owners.size > 0 ? node : merge(node.left, node.right)
  }
  if (side < 0) node.left = remove(node.left, interval, owner)
  else node.right = remove(node.right, interval, owner)
  update(node)
  return node
}

/** Joins two subtrees. Every interval of `left` is before every interval of `right`. */
function merge<Owner>(
  left: TreeNode<Owner> | null,
  right: TreeNode<Owner> | null,
): TreeNode<Owner> | null {
  if (left === null) return right
  if (right === null) return left
  if (left.priority > right.priority) {
    left.right = merge(left.right, right)
    update(left)
    return left
  }
  right.left = merge(left, right.left)
  update(right)
  return right
}

function rotateRight<Owner>(node: TreeNode<Owner>, left: TreeNode<Owner>): TreeNode<Owner> {
  node.left = left.right
  left.right = node
  update(node)
  update(left)
  return left
}

function rotateLeft<Owner>(node: TreeNode<Owner>, right: TreeNode<Owner>): TreeNode<Owner> {
  node.right = right.left
  right.left = node
  update(node)
  update(right)
  return right
}

function update<Owner>(node: TreeNode<Owner>): void {
  let greatest = node.upper
  if (node.left !== null && node.left.greatestUpper > greatest) greatest = node.left.greatestUpper
  if (node.right !== null && node.right.greatestUpper > greatest) {
    greatest = node.right.greatestUpper
  }
  node.greatestUpper = greatest
}
