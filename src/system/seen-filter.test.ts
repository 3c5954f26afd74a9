import { describe, expect, it } from 'vitest'
import { SeenFilter } from './seen-filter.ts'

describe('a filter of seen texts', () => {
  it('a filter recognizes a text from its second time on, as text or as bytes', () => {
    const recent = new SeenFilter(1_024)
    const text = 'déjà vu'
    expect([recent.hasSeen(text), recent.hasSeen(text)]).toEqual([false, true])
    expect(recent.hasSeen(new TextEncoder().encode(text))).toBe(true)
    expect(recent.hasSeen('')).toBe(false)
  })

  it('a filter of seen texts distinguishes the versions of a text', () => {
    const recent = new SeenFilter(1_024)
    const versions = [1, 2, 2 ** 40, 1, 2 ** 40, 3]
    const seen = versions.map((version) => recent.hasSeen('a document', version))
    expect(seen).toEqual([false, false, false, true, true, false])
  })

  it('a filter of seen texts recognizes texts that alternate with others of the same set', () => {
    const recent = new SeenFilter(4)
    const texts = ['one', 'two', 'three', 'four']
    expect(texts.map((text) => recent.hasSeen(text))).toEqual([false, false, false, false])
    expect(texts.map((text) => recent.hasSeen(text))).toEqual([true, true, true, true])
    expect([recent.hasSeen('five'), recent.hasSeen('one')]).toEqual([false, false])
  })

  it('a filter forgets texts once others take their slots, and hardly any before', () => {
    const recent = new SeenFilter(1_024)
    for (let i = 0; i < 32; i++) recent.hasSeen(`text ${i}`)
    const kept = Array.from({ length: 32 }, (_, i) => recent.hasSeen(`text ${i}`))
    expect(kept.filter(Boolean).length).toBeGreaterThan(28)
    const fresh = Array.from({ length: 100_000 }, (_, i) => recent.hasSeen(`other ${i}`))
    expect(fresh.filter(Boolean).length).toBeLessThan(5)
    expect(recent.hasSeen('text 0')).toBe(false)
  })
})
