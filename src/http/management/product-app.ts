/** What the lifecycle routes need of the application; mount lets none of them run without it. */
import type { Product } from '../../product/product.ts'

export interface ProductApp {
  readonly product: Product
}
