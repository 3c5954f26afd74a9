/** Loads scripts of the site when they are needed. They set a global value, also from a file. */
import { element } from './elements.ts'

export function loadScript(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const up = document.documentElement.dataset.up ?? ''
    const script = element('script', { src: up + name })
    script.addEventListener('load', () => resolve())
    script.addEventListener('error', () => {
      script.remove()
      reject(new Error(`${name} was not loaded`))
    })
    document.head.append(script)
  })
}
