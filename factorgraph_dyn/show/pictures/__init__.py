"""Pictures of graphs, matrices, trees and eliminations."""
