import { describe, expect, it } from 'vitest'
import { RecentTexts } from './recent-texts.ts'

describe('recent texts', () => {
  it('saw a text before from its second time on, as text or as bytes', () => {
    const recent = new RecentTexts(1_024)
    const text = 'déjà vu'
    expect([recent.sawBefore(text), recent.sawBefore(text)]).toEqual([false, true])
    expect(recent.sawBefore(new TextEncoder().encode(text))).toBe(true)
    expect(recent.sawBefore('')).toBe(false)
  })

  it('takes each version of a text for another one', () => {
    const recent = new RecentTexts(1_024)
    const versions = [1, 2, 2 ** 40, 1, 2 ** 40, 3]
    const seen = versions.map((version) => recent.sawBefore('a document', version))
    expect(seen).toEqual([false, false, false, true, true, false])
  })

  it('saw before what comes in turns with others that share its places', () => {
    const recent = new RecentTexts(4)
    const texts = ['one', 'two', 'three', 'four']
    expect(texts.map((text) => recent.sawBefore(text))).toEqual([false, false, false, false])
    expect(texts.map((text) => recent.sawBefore(text))).toEqual([true, true, true, true])
    expect([recent.sawBefore('five'), recent.sawBefore('one')]).toEqual([false, false])
  })

  it('forgets where others take the place, and nearly nothing before', () => {
    const recent = new RecentTexts(1_024)
    for (let i = 0; i < 32; i++) recent.sawBefore(`text ${i}`)
    const kept = Array.from({ length: 32 }, (_, i) => recent.sawBefore(`text ${i}`))
    expect(kept.filter(Boolean).length).toBeGreaterThan(28)
    const fresh = Array.from({ length: 100_000 }, (_, i) => recent.sawBefore(`other ${i}`))
    expect(fresh.filter(Boolean).length).toBeLessThan(5)
    expect(recent.sawBefore('text 0')).toBe(false)
  })
})
